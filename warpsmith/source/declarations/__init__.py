"""Declarations of a source: arguments, types, structs, constants, variables on the device."""
