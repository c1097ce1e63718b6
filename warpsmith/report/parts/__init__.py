"""Style, charts and pieces of templates, shared by the report and the pages of the service."""

from pathlib import Path

FOLDER = Path(__file__).parent
