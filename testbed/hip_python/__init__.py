"""Stand-ins for hip-python, with the part of its interface that the back end uses."""
