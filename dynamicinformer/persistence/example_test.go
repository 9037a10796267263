package persistence_test

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

// memory is a Backend that stores content in the memory of the process.
type memory map[persistence.View]*content

// Open implements persistence.Backend.
func (m memory) Open(_ context.Context, view persistence.View) (persistence.StoredContent, error) {
	if m[view] == nil {
		m[view] = &content{}
	}
	return m[view], nil
}

type content struct {
	at      *persistence.Checkpoint
	records []persistence.Record
	// changed is the number of records after the whole content.
	changed int
}

func (c *content) Load(_ context.Context, f func(persistence.Checkpoint, persistence.LoadFunc) error) error {
	if c.at == nil {
		return nil
	}
	return f(*c.at, func(onRecord func(persistence.Record) error) error {
		for _, record := range c.records {
			if err := onRecord(record); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *content) Save(_ context.Context, at persistence.Checkpoint, whole bool,
	write func(put persistence.PutRecord) error) error {
	var records []persistence.Record
	err := write(func(head, bodies []byte) error {
		record := persistence.Record{Head: bytes.Clone(head)}
		if bodies != nil {
			text := bytes.Clone(bodies)
			record.Bodies, record.Retained = func() ([]byte, error) { return text, nil }, len(text)
		}
		records = append(records, record)
		return nil
	})
	if err != nil {
		return err
	}
	if whole {
		c.records, c.changed = nil, -len(records)
	}
	c.at, c.records, c.changed = &at, append(c.records, records...), c.changed+len(records)
	return nil
}

func (c *content) NeedsRewrite() bool { return c.changed > len(c.records)/4 }

func (c *content) Close() error { return nil }

// Implement a Backend. Options.Persistence of a factory takes it.
func Example() {
	ctx := context.Background()
	var backend persistence.Backend = memory{}
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	v, err := backend.Open(ctx, persistence.View{Resource: widgets, Complete: true})
	must(err)
	err = v.Save(ctx, persistence.Checkpoint{ResourceVersion: "7", Objects: 1}, true,
		func(put persistence.PutRecord) error { return put([]byte("a record of the informer"), nil) })
	must(err)
	must(v.Load(ctx, func(at persistence.Checkpoint, _ persistence.LoadFunc) error {
		fmt.Println(at.Objects, "object at version", at.ResourceVersion)
		return nil
	}))

	// Output:
	// 1 object at version 7
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
