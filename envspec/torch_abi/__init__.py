"""What each torch release exports."""
