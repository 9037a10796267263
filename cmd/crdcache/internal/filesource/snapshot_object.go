package filesource

import (
	"iter"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/internal/snapshot"
	"github.com/crdcache/crdcache/serving/readapi"
)

// page is a block of objects. It is in memory while it is used.
type page struct {
	collection *snapshotCollection
	block      int

	mu      sync.Mutex
	records weak.Pointer[[]snapshot.Record]
}

// recentPages keeps the latest pages in memory, because the next read is probably of the same page.
type recentPages struct {
	mu    sync.Mutex
	pages [2]*[]snapshot.Record
	next  int
}

func (r *recentPages) add(records *[]snapshot.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pages[r.next] = records
	r.next = (r.next + 1) % len(r.pages)
}

func (p *page) load() *[]snapshot.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	if records := p.records.Value(); records != nil {
		return records
	}
	records, err := p.collection.savedObjects.Block(p.block)
	if err != nil {
		p.collection.fail(err)
	}
	p.records = weak.Make(&records)
	p.collection.recent.add(&records)
	return &records
}

type storedObject struct {
	key        string
	page       *page // nil if loaded is set
	index      int   // index in the page
	position   int
	ownRecord  *snapshot.Record
	collection *snapshotCollection
}

func (o *storedObject) record() snapshot.Record {
	if o.page == nil {
		return *o.ownRecord
	}
	return (*o.page.load())[o.index]
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
	if s.savedObjects.Ordered() {
		n, err := s.savedObjects.Count(from, to)
		if err != nil {
			s.fail(err)
		}
		return n
	}
	n := 0
	for range s.objects(from, to) {
		n++
	}
	return n
}

// objects returns the objects with keys in [from, to). An empty to means no limit.
func (c *snapshotCollection) objects(from, to string) iter.Seq[readapi.Object] {
	inRange := func(key string) bool { return key >= from && (to == "" || key < to) }
	if !c.savedObjects.Ordered() {
		return func(yield func(readapi.Object) bool) {
			for r, err := range c.savedObjects.All {
				if err != nil {
					c.fail(err)
				}
				if inRange(r.Key) &&
					!yield(&storedObject{key: r.Key, ownRecord: &r, position: r.Position, collection: c}) {
					return
				}
			}
		}
	}
	return func(yield func(readapi.Object) bool) {
		first, _ := c.savedObjects.Find(from)
		for i := max(first, 0); i < len(c.pages); i++ {
			p := &c.pages[i]
			for index, r := range *p.load() {
				if to != "" && r.Key >= to {
					return
				}
				if inRange(r.Key) &&
					!yield(&storedObject{key: r.Key, page: p, index: index, position: r.Position,
						collection: c}) {
					return
				}
			}
		}
	}
}
