package manifest

import (
	"bytes"
	"fmt"
)

// binaryFormats are formats that are not read, by the bytes at an offset.
var binaryFormats = []struct {
	offset int
	magic  string
	name   string
}{
	{0, "\xfd7zXZ\x00", "an xz file: unpack it"},
	{0, "BZh", "a bzip2 file: unpack it"},
	{0, "7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it"},
	{0, "Rar!\x1a\x07", "a RAR archive: unpack it"},
	{0, "\x04\x22\x4d\x18", "an lz4 file: unpack it"},
	{16, "\xed\xda\x0c\xed", "an etcd database: start an API server with it, and read that"},
	{0, "SQLite format 3\x00", "an SQLite database"},
	{0, "\x93CRDSNAP", "a snapshot: read it with --from"},
	{0, "k8s\x00", "an object in Protobuf: write it as JSON"},
}

// binaryError returns an error if data is not a text.
func binaryError(head []byte) error {
	for _, format := range binaryFormats {
		if len(head) > format.offset && bytes.HasPrefix(head[format.offset:], []byte(format.magic)) {
			return fmt.Errorf("this is %s", format.name)
		}
	}
	switch nul := bytes.IndexByte(head, 0); {
	case nul < 0, bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return nil
	case len(bytes.TrimLeft(head, "\x00")) == 0:
		return fmt.Errorf("this has only zero bytes: it is damaged, or an archive without files")
	case nul < 2 && len(head) > 3 && head[nul+2] == 0:
		return fmt.Errorf("this is UTF-16 without a byte order mark: convert it to UTF-8")
	}
	return fmt.Errorf("this is a binary file")
}
