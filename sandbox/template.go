package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
)

// template has the fields that the API server adds to every object of a shape.
type template struct {
	managers []manager
	body     map[string]any // as stored, including defaults
}

// manager is one entry of managedFields.
type manager struct {
	entry  map[string]any
	fields json.RawMessage
}

// templates creates the template of each shape once, from a sample that the API server stores. It is safe for
// concurrent use.
type templates struct {
	dynamic dynamic.Interface
	etcd    *clientv3.Client

	mu struct {
		sync.Mutex
		byShape map[string]template
	}
}

func newTemplates(dyn dynamic.Interface, etcd *clientv3.Client) *templates {
	ts := &templates{dynamic: dyn, etcd: etcd}
	ts.mu.byShape = map[string]template{}
	return ts
}

// get returns the template for the shape of c. Concurrent callers wait for each other, which is cheap because
// there are few shapes.
func (ts *templates) get(ctx context.Context, id objectIdentity, c objectContent) (template, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t, ok := ts.mu.byShape[c.shape]; ok {
		return t, nil
	}
	t, err := ts.sample(ctx, id, c)
	if err != nil {
		return template{}, fmt.Errorf("sample object: %w", err)
	}
	ts.mu.byShape[c.shape] = t
	return t, nil
}

// sample creates an object, reads the stored form and deletes the object.
func (ts *templates) sample(ctx context.Context, id objectIdentity,
	c objectContent) (tmpl template, err error) {
	id.name = "sample-" + id.uid
	if err := createThroughAPI(ctx, ts.dynamic, buildObject(id, c)); err != nil {
		return template{}, err
	}
	defer func() {
		client := ts.dynamic.Resource(certificateResource).Namespace(id.namespace)
		err = errors.Join(err, client.Delete(ctx, id.name, metav1.DeleteOptions{}))
	}()
	key := etcdKey(id.namespace, id.name)
	resp, err := ts.etcd.Get(ctx, key)
	if err != nil {
		return template{}, fmt.Errorf("etcd: %w", err)
	}
	if len(resp.Kvs) != 1 {
		return template{}, fmt.Errorf("etcd has no %s: does this API server use another etcd?", key)
	}
	return parseTemplate(resp.Kvs[0].Value)
}

func parseTemplate(stored []byte) (template, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(stored, &object); err != nil {
		return template{}, err
	}
	entries, _, err := unstructured.NestedSlice(object, "metadata", "managedFields")
	if err != nil {
		return template{}, err
	}
	// The server sorts by time, but all times of the sample are equal.
	slices.SortStableFunc(entries, func(a, b any) int {
		return cmp.Compare(subresource(a), subresource(b))
	})
	t := template{body: object}
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		fields, err := json.Marshal(entry["fieldsV1"])
		if err != nil {
			return template{}, err
		}
		t.managers = append(t.managers, manager{entry: entry, fields: fields})
	}
	delete(object, "metadata")
	return t, nil
}

func subresource(entry any) string {
	fields, _ := entry.(map[string]any)
	s, _ := fields["subresource"].(string)
	return s
}

// encode returns the object as the API server would store it.
func (t template) encode(id objectIdentity, c objectContent) ([]byte, error) {
	object := buildObject(id, c)
	for name, stored := range t.body {
		object.Object[name] = withDefaults(object.Object[name], stored)
	}
	metadata := object.Object["metadata"].(map[string]any)
	metadata["uid"] = id.uid
	metadata["creationTimestamp"] = timestamp(id.created)
	metadata["generation"] = int64(1)
	metadata["managedFields"] = t.managedFields(id.created)
	data, err := json.Marshal(object.Object)
	return append(data, '\n'), err
}

func (t template) managedFields(created time.Time) []any {
	entries := make([]any, 0, len(t.managers))
	for i, m := range t.managers {
		entry := map[string]any{}
		for name, value := range m.entry {
			entry[name] = value
		}
		// Later entries belong to later controllers.
		entry["time"] = timestamp(created.Add(time.Duration(i) * 7 * time.Second))
		entry["fieldsV1"] = m.fields
		entries = append(entries, entry)
	}
	return entries
}

// withDefaults adds to value the fields that only the stored sample has.
func withDefaults(value, stored any) any {
	switch stored := stored.(type) {
	case map[string]any:
		fields, ok := value.(map[string]any)
		if !ok {
			break
		}
		for name, s := range stored {
			fields[name] = withDefaults(fields[name], s)
		}
	case []any:
		list, ok := value.([]any)
		if !ok || len(list) != len(stored) {
			break
		}
		for i := range list {
			list[i] = withDefaults(list[i], stored[i])
		}
	}
	if value == nil {
		return stored
	}
	return value
}
