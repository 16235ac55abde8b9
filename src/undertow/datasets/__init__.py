"""What examples are drawn from: a synthetic city, and stand-ins for data of people."""

from undertow.datasets.city import (
    CITY_START,
    CITY_TRANSITION,
    City,
    synthetic_city,
    write_city,
)
from undertow.datasets.folder import (
    data_folder,
    read_columns,
    require_file,
)
from undertow.datasets.road import (
    RoadNetwork,
    braced_grid,
    grid_graph,
)
from undertow.datasets.stand_in import (
    ACTIVITY_TRANSITION,
    GALTON_CORRELATION,
    GALTON_DEVIATIONS,
    GALTON_MEANS,
    HOURS_LIMIT,
    Hours,
    Series,
    activity_stand_in,
    galton_covariance,
    hours_stand_in,
    simulate_chain,
)
from undertow.errors import DataError

__all__ = [
    "ACTIVITY_TRANSITION",
    "CITY_START",
    "CITY_TRANSITION",
    "GALTON_CORRELATION",
    "GALTON_DEVIATIONS",
    "GALTON_MEANS",
    "HOURS_LIMIT",
    "City",
    "DataError",
    "Hours",
    "RoadNetwork",
    "Series",
    "activity_stand_in",
    "braced_grid",
    "data_folder",
    "galton_covariance",
    "grid_graph",
    "hours_stand_in",
    "read_columns",
    "require_file",
    "simulate_chain",
    "synthetic_city",
    "write_city",
]
