"""Judges results that another run of the Yahoo benchmark left behind: can they be what was offered?"""
