"""Many runs or measurements with one question."""
