"""The parser `pandas` of spark_parse.py, which runs in Spark's Python workers. It needs pandas, which few
engines have.
"""

import pandas as pd
from pyspark.sql.pandas.functions import pandas_udf

from workloads.ad_impressions.jobs.spark_record import EVENT, FIELDS, fields_of


# Spark reads these annotations, thus they must not be strings here. Spark's own types still require the old form.
@pandas_udf(EVENT)  # type: ignore[call-overload, untyped-decorator]
def parse(values: pd.Series) -> pd.DataFrame:
    return pd.DataFrame([fields_of(value) for value in values], columns=FIELDS)
