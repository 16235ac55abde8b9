"""Noise sources: secure for releases, simulated for studies, never mixed up."""

from undertow.mechanisms.noise.bits import BitSource
from undertow.mechanisms.noise.draw import Draw, NoiseSource
from undertow.mechanisms.noise.lattice import LatticeGaussian, LatticeLaplace
from undertow.mechanisms.noise.secure import OpenDPSource, SecureSource, secure_source
from undertow.mechanisms.noise.simulated import SimulatedSource

__all__ = [
    "BitSource",
    "Draw",
    "LatticeGaussian",
    "LatticeLaplace",
    "NoiseSource",
    "OpenDPSource",
    "SecureSource",
    "SimulatedSource",
    "secure_source",
]
