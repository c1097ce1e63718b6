"""All queries. A repository works inside the session it is given and never commits."""
