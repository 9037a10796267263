package health

import (
	"github.com/crdcache/crdcache/internal/requests"
)

// Relists counts by reason how often a type was listed again, since the informer was made. Relists are normal: a
// few a day follow from compaction of the server's history, and each change of a CRD's schema makes one.
type Relists struct {
	// Expired counts those with RelistExpired, and so on.
	Expired, TooLarge, Failed int
}

func (r *Relists) count(reason requests.RelistReason) {
	switch reason {
	case requests.RelistExpired:
		r.Expired++
	case requests.RelistTooLarge:
		r.TooLarge++
	default:
		r.Failed++
	}
}
