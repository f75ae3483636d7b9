"""Tests by promise: each folder mirrors one of src/shiftbook."""
