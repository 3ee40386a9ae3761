"""Plans: slots and steps, how they are built, checked and explained."""
