"""Desired against observed: hands units over, takes them back, reports what happened."""
