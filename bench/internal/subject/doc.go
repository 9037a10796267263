// Package subject holds what the benchmark compares: caches of one custom resource, each filled and kept by
// another library, and behind one interface so that all are measured alike.
//
// A process holds one subject at a time: two of them would share a heap and a garbage collector.
package subject
