"""What several tests need and pytest doesn't have."""
