package example;

/** How many views a campaign had in a window. */
public record Total(String campaign, long windowMs, long views) {}
