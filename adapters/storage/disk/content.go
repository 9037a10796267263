package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/internal/block"
)

// storedContent is a log. The file is open only during operations, so that another process can replace it.
type storedContent struct {
	store *Store
	view  persistence.View
	path  string
	// log is the log as it was loaded or saved last; nil if unknown. info identifies its file.
	log  *block.Log
	info os.FileInfo
}

// A log is rewritten if the changes have more bytes than minChanges and than the whole content divided by
// wholeRatio.
const minChanges, wholeRatio = 64 << 10, 4

var errNoContent = errors.New("the stored content is unknown: load it, or save a whole one")

// Load implements persistence.StoredContent. It reads the log, or else Options.Snapshot.
func (c *storedContent) Load(ctx context.Context,
	f func(persistence.Checkpoint, persistence.LoadFunc) error) (err error) {
	end, err := c.store.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	c.log = nil
	file, err := os.Open(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return c.store.snapshot.Load(c.view, f)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	log, err := block.ReadLog(file, info.Size(), c.store.cipher)
	if err == nil && log.View != c.view {
		err = block.Damaged(log.End, "it has the content of %v", log.View)
	}
	if err == nil {
		err = f(log.At, func(onRecord func(persistence.Record) error) error {
			return log.Load(file, func(record persistence.Record) error {
				return cmp.Or(onRecord(record), context.Cause(ctx))
			})
		})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	c.log, c.info = log, info
	return nil
}

// NeedsRewrite implements persistence.StoredContent.
func (c *storedContent) NeedsRewrite() bool {
	return c.log == nil || c.log.HasOldKey || c.log.End-c.log.First > max(minChanges, c.log.First/wholeRatio)
}

// Save implements persistence.StoredContent.
func (c *storedContent) Save(ctx context.Context, at persistence.Checkpoint, whole bool,
	write func(put persistence.PutRecord) error) error {
	end, err := c.store.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	log := c.log
	c.log = nil
	if !whole && log == nil {
		return errNoContent
	}
	save := func(w *block.Writer) error {
		if err := c.writeRecords(ctx, w, write); err != nil {
			return err
		}
		return w.Commit(block.Save{View: c.view, At: at})
	}
	if whole {
		log, err = c.replace(save)
	} else {
		err = c.append(log, save)
	}
	if err == nil {
		c.log = log
	}
	return err
}

// writeRecords compresses and writes the records that write puts.
func (c *storedContent) writeRecords(ctx context.Context, w *block.Writer,
	write func(put persistence.PutRecord) error) error {
	compressor := c.store.compressors.Get().(*block.Compressor)
	defer c.store.compressors.Put(compressor)
	var record []byte
	return write(func(head, bodies []byte) (err error) {
		if bodies == nil {
			record, err = block.AppendText(record[:0], block.Changes, head, compressor)
		} else {
			parts := block.Parts{Head: head, Bodies: bodies}
			record, err = block.AppendObjects(record[:0], parts, false, compressor)
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		_, err = w.Put(record)
		return err
	})
}

// replace writes a new log, and renames it to the path.
func (c *storedContent) replace(save func(*block.Writer) error) (log *block.Log, err error) {
	newPath := c.path + newSuffix
	var w *block.Writer
	err = c.write(newPath, os.O_CREATE|os.O_TRUNC, func(file *diskFile) error {
		w = block.NewWriter(file, block.LogForm, c.store.cipher)
		c.info, err = file.Stat()
		if err == nil {
			err = save(w)
		}
		return err
	})
	if err == nil {
		if err = c.store.options.disk("rename", c.path); err == nil {
			err = os.Rename(newPath, c.path)
		}
	}
	if err != nil {
		_ = os.Remove(newPath) // the next process removes it otherwise
		return nil, err
	}
	if err = c.store.options.disk("sync", filepath.Dir(c.path)); err == nil {
		err = syncDir(filepath.Dir(c.path))
	}
	return &block.Log{Header: w.Header, First: w.End, End: w.End}, err
}

// append appends changes to the log.
func (c *storedContent) append(log *block.Log, save func(*block.Writer) error) error {
	return c.write(c.path, 0, func(file *diskFile) error {
		info, err := file.Stat()
		if err == nil && (!os.SameFile(info, c.info) || info.Size() < log.End) {
			return fmt.Errorf("%s: %w", c.path, errFolderRemoved)
		}
		if err == nil {
			err = file.Truncate(log.End) // the end of a failed save
		}
		if err == nil {
			_, err = file.Seek(log.End, io.SeekStart)
		}
		if err != nil {
			return err
		}
		w := block.ContinueFile(file, log.Header, log.End, c.store.cipher)
		err = save(w)
		log.End = w.End
		return err
	})
}

// write opens a file, calls f to write it, and syncs it.
func (c *storedContent) write(path string, flags int, f func(*diskFile) error) (err error) {
	if err := c.store.options.disk("open", path); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|flags, privateMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := f(&diskFile{file, c.store}); err != nil {
		return err
	}
	if err := c.store.options.disk("sync", path); err != nil {
		return err
	}
	return file.Sync()
}

type diskFile struct {
	*os.File
	store *Store
}

func (f *diskFile) Write(text []byte) (int, error) {
	if err := f.store.options.disk("write", f.Name()); err != nil {
		return 0, err
	}
	return f.File.Write(text)
}

// Close implements persistence.StoredContent.
func (c *storedContent) Close() error {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	delete(c.store.mu.open, c.view)
	return nil
}
