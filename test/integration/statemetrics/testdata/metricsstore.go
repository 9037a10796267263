package metricsstore

// Bookmark and LastStoreSyncResourceVersion are methods of cache.Store since client-go 0.36.

func (*MetricsStore) Bookmark(string) {}

func (*MetricsStore) LastStoreSyncResourceVersion() string { return "" }
