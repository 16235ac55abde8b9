"""Functions that are audited: noise of scale one on numbers from 0 on."""

import random


def count(value):
    return value + random.expovariate(1) - random.expovariate(1)


def exact(value):
    return value


def pair(value):
    return [value + random.gauss(0, 1), round(random.gauss(0, 1), 2)]
