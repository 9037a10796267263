// Package apiserver is a Kubernetes API server in memory: a storage of types and objects, and the rules by
// which a kube-apiserver writes them. Package readapi serves its reads; test/testcluster is its public form.
//
// A Storage is a readapi.Backend. Storage.Writer returns a backend that clients can also write to:
//
//	storage := apiserver.NewStorage(apiserver.StorageOptions{Stamp: true})
//	handler := readapi.NewHandler(storage.Writer(apiserver.WriterOptions{}), readapi.HandlerOptions{})
//
// Each change gets the next resource version of the whole storage. Each type remembers its latest changes
// (StorageOptions.History). An object is stored as JSON with its labels. Snapshots and history share them.
package apiserver
