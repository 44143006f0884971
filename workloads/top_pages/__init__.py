"""The five pages with the most views in each window; equal views are settled by the name."""
