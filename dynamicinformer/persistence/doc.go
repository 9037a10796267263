// Package persistence defines the storage that informers write their cached objects to, so that the
// next process can start from them. Package adapters/storage/disk implements
// it, and dynamicinformer.Options.Persistence takes it.
package persistence
