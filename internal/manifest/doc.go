// Package manifest reads Kubernetes objects from text, one after the other: YAML and JSON, several documents in a
// stream, Lists of any kind, what kubectl get prints and what kubectl cluster-info dump writes, compressed by gzip or
// zstd or not.
//
// # Usage
//
//	err := manifest.Read(ctx, file, func(e manifest.Entry) bool {
//		fmt.Println(e.Line, string(e.Data), e.Err)
//		return true
//	})
//
// ReadFiles does the same for files and directories, and decodes the objects.
//
// # What is streamed
//
// JSON is read value by value. The items of a list are told as they come, so that a list can be larger than memory.
//
// YAML is cut where documents end, which "---" and "..." at the beginning of a line say wherever they stand. Within a
// document, only the items of a list as kubectl prints it are read one by one, and only as long as the YAML library
// confirms each cut: an item that is a whole sequence of one element by itself, without anchors, is the same one within
// the document. From the first item on that is not, the rest of the document is read as one.
//
// # Bounds
//
// The work is linear in the bytes of the text, and a document or an item is at most MaxDocument. Aliases may not make
// more of a document than ten times its text.
package manifest
