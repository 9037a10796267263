package filesource

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/internal/snapshot"
	"github.com/crdcache/crdcache/serving/readapi"
)

// storedObject is an object of a snapshot. Its block is in memory while it is used.
type storedObject struct {
	key          string
	block, index int              // index in the block
	ownRecord    *snapshot.Record // nil: in the block
	collection   *snapshotCollection
}

func (o *storedObject) record() snapshot.Record {
	if o.ownRecord != nil {
		return *o.ownRecord
	}
	return o.collection.readBlock(o.block)[o.index]
}

func (c *snapshotCollection) readBlock(i int) []snapshot.Record {
	records, err := c.savedObjects.Block(i)
	if err != nil {
		c.fail(err)
	}
	return records
}

func (o *storedObject) Key() string { return o.key }

func (o *storedObject) Version() string { return o.record().Version }

func (o *storedObject) JSON() ([]byte, error) { return o.record().JSON, nil }

func (o *storedObject) AppendJSON(dst []byte, apiVersion string) ([]byte, error) {
	return o.record().AppendWith(dst, apiVersion), nil
}

func (o *storedObject) Labels() labels.Labels { return o.record().Labels }

func (c *snapshotCollection) Get(key string) readapi.Object {
	for o := range c.objects(key, key+"\x00") {
		return o
	}
	return nil
}

func (c *snapshotCollection) Snapshot(version uint64) readapi.Snapshot {
	if version != 0 && version != c.version {
		return nil
	}
	return scanSnapshot{c}
}

type scanSnapshot struct{ *snapshotCollection }

func (s scanSnapshot) Range(from, to string) iter.Seq[readapi.Object] { return s.objects(from, to) }

func (s scanSnapshot) Count(from, to string) int {
	n, err := s.savedObjects.Count(from, to)
	if err != nil {
		s.fail(err)
	}
	return n
}

// objects returns the objects with keys in [from, to). An empty to means no limit.
func (c *snapshotCollection) objects(from, to string) iter.Seq[readapi.Object] {
	return func(yield func(readapi.Object) bool) {
		if !c.savedObjects.Ordered() {
			for r, err := range c.savedObjects.Range(from, to) {
				if err != nil {
					c.fail(err)
				}
				if !yield(&storedObject{key: r.Key, ownRecord: &r}) {
					return
				}
			}
			return
		}
		first, _ := c.savedObjects.Find(from)
		for i := max(first, 0); i < c.savedObjects.Blocks(); i++ {
			for index, r := range c.readBlock(i) {
				if to != "" && r.Key >= to {
					return
				}
				if r.Key >= from && !yield(&storedObject{r.Key, i, index, nil, c}) {
					return
				}
			}
		}
	}
}
