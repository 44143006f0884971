package example;

/** An ad was viewed: what the job counts. */
public record View(String campaign, long timeMs) {}
