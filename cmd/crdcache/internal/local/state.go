package local

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/snapshot"
)

// StateInterval is how far what is kept in files may be behind: each save of a type writes all of its file.
const StateInterval = time.Minute

// stateAge is how long the file of a type stays that nobody asks for.
const stateAge = 30 * 24 * time.Hour

// State keeps what a server holds for the next one, a snapshot file for each view of a type. It implements
// dynamicinformer.Persistence. A file is written whole and put in its place once it is on the disk; a damaged one is an error,
// after which the type is listed and its file written anew.
//
// storage/disk does the same for less writing. It is a module of its own, with a storage engine that this one, and with it every
// program that uses the library, would have to name among its dependencies; and a module with a replace directive for it
// could not be installed by its name.
type State struct {
	folder string
	lock   *os.File
}

// OpenState opens the folder of an identity below a folder. One process has it at a time.
func OpenState(folder, identity string) (*State, error) {
	s := &State{folder: filepath.Join(folder, identity)}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return nil, err
	}
	if err := private(s.folder, fs.ModeDir); err != nil {
		return nil, err
	}
	var err error
	if s.lock, err = os.OpenFile(filepath.Join(s.folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if !lock(s.lock) {
		return nil, errors.Join(fmt.Errorf("another process keeps its state in %s", s.folder), s.lock.Close())
	}
	s.clean()
	return s, nil
}

// clean removes what was being written when a process was killed, and what nobody has asked for. What cannot be removed stays.
func (s *State) clean() {
	entries, _ := os.ReadDir(s.folder)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			continue
		}
		old := strings.HasSuffix(entry.Name(), stateSuffix) && time.Since(info.ModTime()) > stateAge
		if old || strings.HasSuffix(entry.Name(), ".part") {
			_ = os.Remove(filepath.Join(s.folder, entry.Name()))
		}
	}
}

// Close gives the folder up.
func (s *State) Close() error { return s.lock.Close() }

const stateSuffix = ".snapshot"

// View implements dynamicinformer.Persistence. A factory has each view once.
func (s *State) View(key string) (dynamicinformer.PersistedView, error) {
	sum := sha256.Sum256([]byte(key))
	path := filepath.Join(s.folder, fmt.Sprintf("%x", sum[:16])+stateSuffix)
	now := time.Now()
	_ = os.Chtimes(path, now, now) // it is asked for, if it is there
	return &stateView{path}, nil
}

// stateView is the file of a view.
type stateView struct{ path string }

// stateType stands in the file for the type, of which a view knows no more than a key.
var stateType = snapshot.Type{Group: "state.crdcache.dev", Version: "v1", Resource: "objects", Kind: "Object"}

// Documents of a file.
const (
	checkpointDocument = "checkpoint"
	apiVersionDocument = "apiVersion" // of the objects, which the file leaves out
)

// open opens the file; nil where there is none.
func (v *stateView) open() (*snapshot.File, error) {
	file, err := snapshot.Open(v.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return file, err
}

// Checkpoint implements dynamicinformer.PersistedView.
func (v *stateView) Checkpoint() (at dynamicinformer.Checkpoint, ok bool, err error) {
	file, err := v.open()
	if file == nil {
		return at, false, err
	}
	defer file.Close()
	err = json.Unmarshal(file.Contents().Server.Documents[checkpointDocument], &at)
	return at, err == nil, err
}

// Load implements dynamicinformer.PersistedView.
func (v *stateView) Load(object func(json []byte) error) error {
	file, err := v.open()
	if err != nil {
		return err
	}
	if file == nil {
		return fs.ErrNotExist
	}
	defer file.Close()
	return each(file, func(_ string, text []byte) error { return object(text) })
}

// each calls take with each object of a file in order, whole again.
func each(file *snapshot.File, take func(key string, text []byte) error) error {
	apiVersion := file.Contents().Server.Documents[apiVersionDocument]
	var whole []byte
	for record, err := range file.Objects(schema.GroupResource{Group: stateType.Group, Resource: stateType.Resource}).All {
		if err != nil {
			return err
		}
		whole = append(append(append(whole[:0], `{"apiVersion":`...), apiVersion...), ',')
		whole = append(whole, bytes.TrimPrefix(record.JSON, []byte{'{'})...)
		if err := take(record.Key, whole); err != nil {
			return err
		}
	}
	return nil
}

// Save implements dynamicinformer.PersistedView.
func (v *stateView) Save(at dynamicinformer.Checkpoint, whole bool, write func(dynamicinformer.PersistenceWriter) error) error {
	checkpoint, err := json.Marshal(at)
	if err != nil {
		return err
	}
	out, err := snapshot.Create(v.path, snapshot.About{Tool: "crdcache serve"})
	if err != nil {
		return err
	}
	defer out.Abort() // without effect after Commit
	w := &stateWriter{section: out.Begin(stateType)}
	if whole {
		err = write(w)
	} else {
		err = v.merge(w, write)
	}
	if err != nil {
		return err
	}
	if err := w.section.Close(at.ResourceVersion); err != nil {
		return err
	}
	out.SetAbout(func(a *snapshot.About) {
		a.Server.Documents = map[string]json.RawMessage{checkpointDocument: checkpoint}
		if w.apiVersion != nil {
			a.Server.Documents[apiVersionDocument] = w.apiVersion
		}
	})
	return out.Commit()
}

// merge writes what the file has with changes.
func (v *stateView) merge(w *stateWriter, write func(dynamicinformer.PersistenceWriter) error) error {
	changed := changes{}
	if err := write(changed); err != nil {
		return err
	}
	var keys []string
	for key, text := range changed {
		if text != nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	putBefore := func(next string, all bool) error {
		for len(keys) > 0 && (all || keys[0] < next) {
			if err := w.Put(keys[0], changed[keys[0]]); err != nil {
				return err
			}
			keys = keys[1:]
		}
		return nil
	}
	file, err := v.open()
	if err != nil {
		return err
	}
	if file == nil {
		return fs.ErrNotExist
	}
	defer file.Close()
	err = each(file, func(key string, text []byte) error {
		if err := putBefore(key, false); err != nil {
			return err
		}
		if _, ok := changed[key]; ok {
			return nil // its new content follows, if it has one
		}
		return w.Put(key, text)
	})
	if err != nil {
		return err
	}
	return putBefore("", true)
}

// Close implements dynamicinformer.PersistedView.
func (v *stateView) Close() error { return nil }

// stateWriter writes objects in the order of their keys.
type stateWriter struct {
	section    *snapshot.Section
	apiVersion json.RawMessage
}

// Put implements dynamicinformer.PersistenceWriter.
func (w *stateWriter) Put(_ string, text []byte) error {
	if w.apiVersion == nil { // all objects of a view are in one
		var object struct {
			APIVersion json.RawMessage `json:"apiVersion"`
		}
		if err := json.Unmarshal(text, &object); err != nil {
			return err
		}
		w.apiVersion = object.APIVersion
	}
	return w.section.Add(text, nil)
}

// Delete implements dynamicinformer.PersistenceWriter: what is not put is not there.
func (w *stateWriter) Delete(string) error { return nil }

// changes are collected; nil is an object that has gone.
type changes map[string][]byte

// Put implements dynamicinformer.PersistenceWriter.
func (c changes) Put(key string, text []byte) error {
	c[key] = bytes.Clone(text)
	return nil
}

// Delete implements dynamicinformer.PersistenceWriter.
func (c changes) Delete(key string) error {
	c[key] = nil
	return nil
}
