package persistence_test

import (
	"context"
	"fmt"
	"maps"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

// memory is a Backend that stores content in the memory of the process.
type memory map[string]*storedObjects

// Open implements persistence.Backend.
func (m memory) Open(_ context.Context, key string) (persistence.StoredContent, error) {
	if m[key] == nil {
		m[key] = &storedObjects{}
	}
	return m[key], nil
}

type storedObjects struct {
	at      *persistence.Checkpoint
	objects content
}

type content map[string][]byte

func (c content) Put(key string, json []byte) error {
	c[key] = append([]byte(nil), json...)
	return nil
}

func (c content) Delete(key string) error {
	delete(c, key)
	return nil
}

func (v *storedObjects) Checkpoint(context.Context) (persistence.Checkpoint, bool, error) {
	if v.at == nil {
		return persistence.Checkpoint{}, false, nil
	}
	return *v.at, true, nil
}

func (v *storedObjects) Load(_ context.Context, object func(json []byte) error) error {
	for _, json := range v.objects {
		if err := object(json); err != nil {
			return err
		}
	}
	return nil
}

func (v *storedObjects) Save(_ context.Context, at persistence.Checkpoint, whole bool,
	write func(persistence.Writer) error) error {
	next := content{}
	if !whole {
		maps.Copy(next, v.objects)
	}
	if err := write(next); err != nil {
		return err
	}
	v.at, v.objects = &at, next
	return nil
}

func (v *storedObjects) Close() error { return nil }

// Implement a Backend. Options.Persistence of a factory takes it.
func Example() {
	ctx := context.Background()
	var backend persistence.Backend = memory{}
	v, err := backend.Open(ctx, "widgets")
	must(err)
	err = v.Save(ctx, persistence.Checkpoint{ResourceVersion: "7", Objects: 1}, true,
		func(w persistence.Writer) error {
			return w.Put("web/a", []byte(`{"kind":"Widget"}`))
		})
	must(err)
	at, ok, err := v.Checkpoint(ctx)
	fmt.Println(at.Objects, "object at version", at.ResourceVersion, ok, err)

	// Output:
	// 1 object at version 7 true <nil>
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
