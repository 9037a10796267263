// Package references tracks the references between objects of several types in both directions, and which of
// them dangle because their target does not exist.
//
// # Usage
//
// Informers feed a [Graph]. Each [InformerSource] is an informer with its type and the references of its
// objects; owner references need not be declared:
//
//	graph := references.New()
//	defer graph.Close()
//	registration, err := graph.Add(references.InformerSource{
//		Type: references.Type{Group: "cert-manager.io", Resource: "certificates", Kind: "Certificate",
//			Namespaced: true},
//		References: resource.References, Informer: informer,
//	})
//	for _, r := range graph.Dangling() { fmt.Println(r) }
//
// [Graph.To] returns the references to an object, [Graph.From] the references of an object, and
// [Graph.Subscribe] sends an event when a reference starts or stops dangling. Queries use a graph through
// [Graph.ForType].
//
// # Consistency
//
// A lookup is atomic. Each type has its own watch, so that a reference can arrive before its target when both
// are created together: it dangles until the target arrives. Eventually the graph agrees with the caches
// (TestGraphMatchesModel).
//
// A reference dangles only if its type has a source that has synced and is complete. Otherwise it is
// [Unknown], for example if no source has the type.
//
// # Concurrency and cost
//
// All methods are safe for concurrent use, and callbacks run without locks. Nothing scans: the cost of a
// change depends on the references of and to the object, the cost of a lookup on its result. The graph uses
// about 200 bytes for each object and each reference, and stores no objects.
package references
