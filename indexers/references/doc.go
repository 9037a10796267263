// Package references follows which objects refer to which: over all types that it is given, in both
// directions, and which references dangle because there is nothing at their other end.
//
// # Usage
//
// A [Graph] is fed by informers. Each [Member] is one of them, with its type and the references that its
// objects make; owner references need not be declared:
//
//	graph := references.New()
//	defer graph.Close()
//	membership, err := graph.Add(references.Member{
//		Type: references.Type{Group: "cert-manager.io", Resource: "certificates", Kind: "Certificate",
//			Namespaced: true},
//		References: resource.References, Informer: informer,
//	})
//	for _, r := range graph.Dangling() { fmt.Println(r) }
//
// [Graph.To] gives who refers to an object, [Graph.From] what an object refers to, and [Graph.Subscribe]
// tells when a reference begins or ceases to dangle. Queries use a graph by [Graph.View].
//
// # Consistency
//
// What a look-up gives is of one moment of the graph. The graph hears of each type by its own connection, so
// that of two objects that are created together the reference may be seen first: it dangles until its target
// is heard of. In the end the graph says what the caches say (TestModel).
//
// A reference dangles only where that is known: its type has a member that has synced and is complete. Others
// are [Unknown], among them those to types that nobody follows.
//
// # Concurrency and cost
//
// All methods are safe for concurrent use, and callbacks run without a lock. Nothing scans: a change costs as
// much as the object has references and is referred to, and a look-up as much as it gives. The graph keeps
// some 200 bytes for each object and each reference, and no object.
package references
