"""What tests and benchmarks share and no package ships: servers, services, recordings, examples, cheats."""
