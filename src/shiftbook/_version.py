"""The version of this release, also read by the build."""

VERSION = "0.1.0"
