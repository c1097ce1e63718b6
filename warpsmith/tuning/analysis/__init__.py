"""Analysis of a search: floors, importance of parameters, facts for agents and the report. Pure."""
