// Package block encodes objects at rest: persisted caches and snapshots.
//
// A record is objects of one type, changes of objects, a checkpoint or an index. A frame is a record in a
// file, with a checksum that covers its place, and optionally encrypted. A log is a file to which frames are
// appended; a closed file ends with an index. docs/design/persistence.md shows the bytes.
//
// Reading trusts no length: its memory is bounded by the size of the file. Damage is a *FormatError.
package block
