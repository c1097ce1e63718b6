"""What the report and the pages of the service share: style, charts, and pieces of templates."""

from pathlib import Path

FOLDER = Path(__file__).parent
