"""The data sets of the studies: loaders for the real files, documented stand-ins."""

from undertow.datasets.folder import DataError, data_folder, read_columns, require_file
from undertow.datasets.genotypes import Genotypes, genotypes_stand_in, load_genotypes
from undertow.datasets.heights import (
    GALTON_CORRELATION,
    GALTON_DEVIATIONS,
    GALTON_MEANS,
    Heights,
    galton_covariance,
    galton_stand_in,
    load_galton,
)
from undertow.datasets.intelligence import (
    FAMILY_IQ_COVARIANCE,
    FAMILY_IQ_MEANS,
    Scores,
    family_iq_stand_in,
    load_family_iq,
    synthetic_iq,
)
from undertow.datasets.series import (
    ACTIVITY_TRANSITION,
    ELECTRICITY_TRANSITIONS,
    Series,
    activity_stand_in,
    electricity_stand_in,
    load_activity,
    load_electricity,
    load_household,
    simulate_chain,
)

__all__ = [
    "ACTIVITY_TRANSITION",
    "ELECTRICITY_TRANSITIONS",
    "FAMILY_IQ_COVARIANCE",
    "FAMILY_IQ_MEANS",
    "GALTON_CORRELATION",
    "GALTON_DEVIATIONS",
    "GALTON_MEANS",
    "DataError",
    "Genotypes",
    "Heights",
    "Scores",
    "Series",
    "activity_stand_in",
    "data_folder",
    "electricity_stand_in",
    "family_iq_stand_in",
    "galton_covariance",
    "galton_stand_in",
    "genotypes_stand_in",
    "load_activity",
    "load_electricity",
    "load_family_iq",
    "load_galton",
    "load_genotypes",
    "load_household",
    "read_columns",
    "require_file",
    "simulate_chain",
    "synthetic_iq",
]
