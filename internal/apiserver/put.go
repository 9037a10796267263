package apiserver

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
)

type putOptions struct {
	now time.Time
	// restore keeps the resource version of the object, and drops the history of its type.
	restore bool
	// byClient marks a write over the API. It fails with errConcurrentChange unless expected is stored.
	byClient bool
	expected *object
	// onlyInVersion stores the object for requests for its version. Others use the object in another version.
	onlyInVersion bool
}

var errConcurrentChange = errors.New("the object has changed in the meantime")

func (s *Storage) put(content map[string]any, options putOptions) (Outcome, error) {
	_, outcome, err := s.putObject(content, options)
	return outcome, err
}

// putObject stores an object and returns its new state. It can change metadata and the top level of
// content, and with StorageOptions.Conform the whole content.
func (s *Storage) putObject(content map[string]any, options putOptions) (*object, Outcome, error) {
	u := &unstructured.Unstructured{Object: content}
	gvk, err := validateIdentity(u)
	if err != nil {
		return nil, "", err
	}
	setNullTexts(u.Object["metadata"].(map[string]any)) // valid
	isDefinition := gvk.GroupKind() == definitionKind
	var definedType *readapi.Type
	if isDefinition {
		if definedType, err = typeOfDefinition(u, options.now); err != nil {
			return nil, "", err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.collectionOf(gvk)
	if err != nil {
		return nil, "", err
	}
	switch {
	case c.typ.Namespaced && u.GetNamespace() == "":
		u.SetNamespace(metav1.NamespaceDefault)
	case !c.typ.Namespaced:
		u.SetNamespace("") // like a kube-apiserver
	}
	if s.options.Conform && !options.byClient {
		c.typ.Version(gvk.Version).Conform(u.Object)
	}
	if s.options.Namespaces && gvk.GroupKind() == namespaceKind && u.GetDeletionTimestamp() == nil {
		u.SetLabels(labels.Merge(u.GetLabels(), labels.Set{"kubernetes.io/metadata.name": u.GetName()}))
		u.Object["spec"] = map[string]any{"finalizers": []any{"kubernetes"}}
		u.Object["status"] = map[string]any{"phase": "Active"}
	}
	after, outcome, err := s.store(c, u, gvk.Version, options)
	if err != nil || outcome == Unchanged {
		return after, outcome, err
	}
	switch {
	case isDefinition && definedType == nil:
		s.removeDefinedType(u.GetName(), options.now)
	case isDefinition:
		err = s.setType(*definedType, Rules{}, u.GetName(), options.now)
	}
	if options.byClient && u.GetDeletionTimestamp() != nil && (isDefinition || hasContent(u)) {
		s.deleteContent(owner{gvk.GroupKind(), u.GetName()}, options.now)
	}
	return after, outcome, err
}

// replace is like putObject, for a write of a client. If content is nil, it deletes the object.
func (s *Storage) replace(gr schema.GroupResource, key string, before *object,
	content map[string]any) (*object, error) {
	now := s.options.Now()
	if content != nil {
		after, _, err := s.putObject(content, putOptions{now: now, byClient: true, expected: before})
		return after, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.types[gr]
	if c == nil || c.objects[key] != before {
		return nil, errConcurrentChange
	}
	s.deleteLocked(c, key, now)
	return nil, nil
}

// validateIdentity validates the fields that every object has.
func validateIdentity(u *unstructured.Unstructured) (schema.GroupVersionKind, error) {
	for _, field := range []string{"apiVersion", "kind"} {
		if text, ok := u.Object[field].(string); !ok || text == "" {
			return schema.GroupVersionKind{}, fmt.Errorf("%s is missing or not a string", field)
		}
	}
	gv, err := schema.ParseGroupVersion(u.GetAPIVersion())
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("apiVersion: %w", err)
	}
	gvk := gv.WithKind(u.GetKind())
	metadata, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		return gvk, errors.New("metadata is missing or not an object")
	}
	if name, ok := metadata["name"].(string); !ok || name == "" || strings.Contains(name, "/") {
		return gvk, fmt.Errorf("metadata.name is %#v: want a name", metadata["name"])
	}
	if namespace, ok := metadata["namespace"].(string); metadata["namespace"] != nil &&
		(!ok || strings.Contains(namespace, "/")) {
		return gvk, fmt.Errorf("metadata.namespace is %#v: want a name", metadata["namespace"])
	}
	// Clients decode metadata strictly: one invalid object would make a whole list unreadable.
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": metadata},
		&metav1.PartialObjectMetadata{})
	if err != nil {
		return gvk, fmt.Errorf("metadata: %w", err)
	}
	return gvk, nil
}

// setNullTexts replaces null in labels and annotations by the empty string, like a kube-apiserver. Otherwise
// no reader would find the other labels.
func setNullTexts(metadata map[string]any) {
	for _, field := range []string{"labels", "annotations"} {
		texts, _ := metadata[field].(map[string]any)
		for key, value := range texts {
			if value == nil {
				texts = maps.Clone(texts) // the caller's
				texts[key] = ""
				metadata[field] = texts
			}
		}
	}
}

// store stores an object unless it is unchanged, and returns its state.
func (s *Storage) store(c *collection, u *unstructured.Unstructured, version string,
	options putOptions) (*object, Outcome, error) {
	key, all := naming.KeyOf(u.GetNamespace(), u.GetName()), c
	if options.onlyInVersion {
		c = c.inVersion[version]
	}
	before := c.objects[key]
	if options.byClient && before != options.expected {
		return nil, "", errConcurrentChange
	}
	if before == nil && options.byClient {
		if err := s.admitCreate(c, u.GetNamespace(), u.GetName()); err != nil {
			return nil, "", err
		}
	}
	stamp := s.options.Stamp && !options.byClient
	restoredVersion, keepsVersion := parseVersion(u.GetResourceVersion())
	keepsVersion = keepsVersion && options.restore
	if before != nil {
		unchanged, err := completeFromStored(before, u, stamp, keepsVersion, c.rules)
		if err != nil {
			return nil, "", err
		}
		if unchanged && before.version == version {
			return before, Unchanged, nil
		}
	} else if stamp {
		setMissingMetadata(u, newUID(), metav1.NewTime(options.now), 1, c.rules)
	}
	nextVersion := s.mu.version + 1
	if keepsVersion {
		// The version of the storage always increases, so that no earlier list can be continued.
		s.mu.version = max(nextVersion, restoredVersion)
	} else {
		s.mu.version = nextVersion
		u.SetResourceVersion(strconv.FormatUint(nextVersion, 10))
	}
	body, err := encodeBody(u.Object)
	if err != nil {
		return nil, "", err
	}
	after := &object{key: key, version: version, body: body}
	if options.restore && s.options.Compress {
		s.setText(after, body)
	}
	s.change(c, key, after, options.restore)
	if own := all.inVersion[version]; own != nil && c == all {
		s.change(own, key, after, options.restore)
	} else if c != all {
		s.useOtherVersion(all, key, version)
	}
	if before != nil {
		return after, Updated, nil
	}
	return after, Added, nil
}

// setText copies the JSON into an object, compressed if the storage compresses.
func (s *Storage) setText(o *object, text []byte) {
	if !s.options.Compress || len(text) < minCompressed {
		o.body = bytes.Clone(text)
		return
	}
	s.mu.compressBuffer = s2.Encode(s.mu.compressBuffer[:cap(s.mu.compressBuffer)], text)
	o.body, o.size = bytes.Clone(s.mu.compressBuffer), len(text)
}

// minCompressed is the size of the smallest text that is compressed.
const minCompressed = 512

// completeFromStored copies missing fields from the stored state to u if stamp is set. It reports
// whether u and the stored state are equal, except for their resource versions unless keepsVersion is set.
func completeFromStored(before *object, u *unstructured.Unstructured, stamp, keepsVersion bool,
	rules Rules) (bool, error) {
	content, err := readapi.Decode(before)
	if err != nil {
		return false, err
	}
	old := &unstructured.Unstructured{Object: content}
	if stamp {
		generation := old.GetGeneration()
		if !reflect.DeepEqual(generationFields(u.Object, true), generationFields(old.Object, true)) {
			generation++
		}
		setMissingMetadata(u, old.GetUID(), old.GetCreationTimestamp(), generation, rules)
	}
	version := u.GetResourceVersion()
	if !keepsVersion {
		u.SetResourceVersion(old.GetResourceVersion())
	}
	body, err := encodeBody(u.Object)
	if err != nil {
		return false, err
	}
	u.SetResourceVersion(version)
	stored, err := before.JSON()
	return err == nil && bytes.Equal(body, stored), err
}

// newUID returns a random UID. Package uuid of apimachinery would add two packages to the command.
func newUID() types.UID {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

// setMissingMetadata sets the fields that an object lacks.
func setMissingMetadata(u *unstructured.Unstructured, uid types.UID, created metav1.Time, generation int64,
	rules Rules) {
	if u.GetUID() == "" {
		u.SetUID(uid)
	}
	if at := u.GetCreationTimestamp(); at.IsZero() {
		u.SetCreationTimestamp(created)
	}
	if u.GetGeneration() == 0 && !rules.NoGeneration {
		u.SetGeneration(generation)
	}
}

// generationFields returns the fields whose changes increase the generation: all except apiVersion,
// metadata and, if the status has its own subresource, the status.
func generationFields(content map[string]any, hasStatus bool) map[string]any {
	counted := map[string]any{}
	for key, value := range content {
		if key != "apiVersion" && key != "metadata" && !(key == "status" && hasStatus) {
			counted[key] = value
		}
	}
	return counted
}

// maxRestoredVersion limits the resource versions of restored objects, so that later versions fit the
// int64 of tokens and clients.
const maxRestoredVersion = 1 << 62

// parseVersion parses a resource version that can be restored: a number in the form of the storage.
func parseVersion(text string) (uint64, bool) {
	version, err := strconv.ParseUint(text, 10, 63)
	return version, err == nil && version > 0 && version <= maxRestoredVersion &&
		strconv.FormatUint(version, 10) == text
}
