// Package filesource serves manifests like a cluster. It reads files into an apiserver.Storage and provides a
// rest.Config whose transport answers from the storage. Informers and discovery work as with a cluster.
//
// Paths are files, directories, and "-" for standard input, in the formats of internal/manifest.
//
// Built-in kinds have the types of a cluster. CustomResourceDefinitions can follow the objects of their
// types. For other kinds the type is inferred from the objects, with a warning when it is used.
//
// No object is converted if the type has objects in the requested version. Requests for the preferred version
// are for all objects, each in its own version, unless SelectVersions names that version (TestVersions).
//
// A single snapshot is served like the API server from which it was saved, including types, tables and
// discovery. Requests for types that the server refused get the same error. Requests for types that were not
// saved are forbidden, so that the types do not look empty.
//
// Follow turns changes of files into changes of objects. If a file cannot be read, or is empty because it is
// being written, its previous objects are kept. Files are polled (TestFollow, TestFollowLostDirectory).
//
// A Source is safe for concurrent use.
package filesource
