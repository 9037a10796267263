// Package output prints collections of objects as kubectl get does, one object at a time, so that memory
// does not grow with the collection.
package output
