package store

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/storage/s2"
)

const benchObjects = 100_000

// clientGo returns client-go's indexer with certificates.
func clientGo(b *testing.B, objects int, indexers cache.Indexers) cache.Indexer {
	b.Helper()
	x := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	form := Objects(withoutManagedFields(b))
	for n := range objects {
		if err := x.Add(keyedCertificate(b, form, n, 1).Item); err != nil {
			b.Fatal(err)
		}
	}
	return x
}

func filled(b *testing.B, form Form, objects int, indexers cache.Indexers) *Store {
	b.Helper()
	s := New(Options{Form: form, Indexers: indexers})
	fill(b, s, objects, 1)
	return s
}

func benchKeys(objects int) []string {
	keys := make([]string, objects)
	for n := range keys {
		keys[n] = fmt.Sprintf("tenant-%d/certificate-%d", n%100, n)
	}
	return keys
}

// BenchmarkGet reads one of 100 or 1,000 objects out of 100,000 by key: the first fit into a processor's
// caches. Hot ones are decoded. Cold ones are not, and are compared with client-go's plus the deep copy that
// its users make.
func BenchmarkGet(b *testing.B) {
	const read = 1000
	keys := benchKeys(benchObjects)
	for n := range read {
		keys[n] = keys[n*97]
	}
	keys = keys[:read]
	theirs := clientGo(b, benchObjects, byNamespace())
	for _, hot := range []int{read / 10, read} {
		b.Run(fmt.Sprint("hot/client-go/", hot), func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				if _, found, _ := theirs.GetByKey(keys[n%hot]); !found {
					b.Fatal("missing")
				}
			}
		})
	}
	b.Run("cold/client-go with DeepCopy", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			object, _, _ := theirs.GetByKey(keys[n%read])
			object.(*unstructured.Unstructured).DeepCopy()
		}
	})
	theirs = nil
	for name, form := range map[string]Form{"object": Objects(withoutManagedFields(b)),
		"packed": NewPacked(withoutManagedFields(b), nil)} {
		s := filled(b, form, benchObjects, byNamespace())
		for _, count := range []int{read / 10, read} {
			b.Run(fmt.Sprint("hot/", name, "/", count), func(b *testing.B) {
				hot := make([]any, count)
				for n := range hot {
					item, _ := s.Snapshot().Get(keys[n])
					hot[n] = form.Object(item)
				}
				for n := 0; b.Loop(); n++ {
					object, found := s.Object(keys[n%count])
					if !found || object != hot[n%count] {
						b.Fatal("missing or not hot")
					}
				}
			})
		}
	}
	for name, form := range map[string]*Packed{"packed": NewPacked(withoutManagedFields(b), nil),
		"compressed": NewPacked(withoutManagedFields(b), s2.New(s2.Options{}))} {
		s := filled(b, form, benchObjects, byNamespace())
		b.Run("cold/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				item, found := s.Snapshot().Get(keys[n%read])
				if !found {
					b.Fatal("missing")
				}
				decode(b, item)
			}
		})
	}
}

// BenchmarkByIndex reads the 1,000 objects of one namespace out of 100,000, all of them hot.
func BenchmarkByIndex(b *testing.B) {
	b.Run("client-go", func(b *testing.B) {
		b.ReportAllocs()
		x := clientGo(b, benchObjects, byNamespace())
		for b.Loop() {
			if list, _ := x.ByIndex(cache.NamespaceIndex, "tenant-7"); len(list) != benchObjects/100 {
				b.Fatal(len(list))
			}
		}
	})
	for name, form := range map[string]Form{"object": Objects(withoutManagedFields(b)),
		"packed": NewPacked(withoutManagedFields(b), nil)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			s := filled(b, form, benchObjects, byNamespace())
			read := func() []any {
				items, _ := s.Snapshot().ItemsByIndex(cache.NamespaceIndex, "tenant-7")
				for n, item := range items {
					items[n] = form.Object(item)
				}
				return items
			}
			hot := read()
			for b.Loop() {
				if list := read(); len(list) != len(hot) {
					b.Fatal(len(list))
				}
			}
		})
	}
}

// BenchmarkPut replaces one object of 100,000, with the index by namespace and two more.
func BenchmarkPut(b *testing.B) {
	const versions = 1000
	b.Run("client-go", func(b *testing.B) {
		b.ReportAllocs()
		x := clientGo(b, benchObjects, withIndexes(cache.Indexers{"uid": byUID, "app": byApp}))
		next := make([]Keyed, versions)
		for n := range next {
			next[n] = keyedCertificate(b, Objects(withoutManagedFields(b)), n, 2)
		}
		for n := 0; b.Loop(); n++ {
			if err := x.Update(next[n%versions].Item); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("object", func(b *testing.B) {
		b.ReportAllocs()
		form := Objects(withoutManagedFields(b))
		s := filled(b, form, benchObjects, withIndexes(cache.Indexers{"uid": byUID, "app": byApp}))
		next := make([]Keyed, versions)
		for n := range next {
			next[n] = keyedCertificate(b, form, n, 2)
		}
		for n := 0; b.Loop(); n++ {
			if _, ok := s.Put(s.Prepare(next[n%versions])); !ok {
				b.Fatal("refused")
			}
		}
	})
}

// BenchmarkReplace stores a relist of 100,000 unchanged objects.
func BenchmarkReplace(b *testing.B) {
	form := NewPacked(withoutManagedFields(b), nil)
	s := filled(b, form, benchObjects, byNamespace())
	all := make([]Keyed, 0, benchObjects)
	for key, item := range s.Snapshot().All {
		all = append(all, Keyed{Key: key, Item: item})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := s.Replace(s.PrepareAll(all), "1"); !ok {
			b.Fatal("refused")
		}
	}
}

func BenchmarkStats(b *testing.B) {
	s := filled(b, NewPacked(withoutManagedFields(b), nil), benchObjects, byNamespace())
	for b.Loop() {
		s.Stats()
	}
}
