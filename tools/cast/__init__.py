"""`make cast`: records two commands on a real cloud, and draws the animation of the README."""
