package snapshot

import "github.com/crdcache/crdcache/internal/block"

// Magic returns the first bytes of every snapshot.
func Magic() []byte { return []byte(block.Magic) }

// ErrNotSnapshot is the error for files that do not begin with Magic.
var ErrNotSnapshot = block.ErrMagic

// FormatError reports a damaged file, or one of another version.
type FormatError = block.FormatError

// header is the header of every snapshot.
var header = block.Header{Form: block.ClosedForm}
