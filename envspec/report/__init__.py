"""What is told to people: errors, findings, progress and the pages that explain codes."""
