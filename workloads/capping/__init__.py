"""Each ad request gets one action: show or suppress, by a cap in an hour and a cool-down."""
