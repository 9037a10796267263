package block

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

// Log is the valid part of a log: everything up to the last valid checkpoint. The rest is being written, was
// being written when the process or the machine ended, or is damaged.
type Log struct {
	Header
	// Save is the text of the last checkpoint. End is the offset after it.
	Save
	End int64
	// First is the size of everything up to the first checkpoint, which follows the whole content.
	First int64
	// HasOldKey reports whether a frame is encrypted with another key than the first.
	HasOldKey bool
	// Damage is why the file is not valid after End; nil if it ends there.
	Damage error

	source io.ReaderAt
	cipher *Cipher
	frames []int64 // the offsets of the valid records, without checkpoints
}

// LogSuffix ends the names of logs in a folder. LockName is the name of its lock.
const LogSuffix, LockName = ".cache", "lock"

// Save is the text of a checkpoint.
type Save struct {
	View persistence.View       `json:"view"`
	At   persistence.Checkpoint `json:"checkpoint"`
}

// ReadLog checks a log of size bytes. A log without a valid checkpoint is damaged.
func ReadLog(source io.ReaderAt, size int64, c *Cipher) (*Log, error) {
	header, err := ReadHeader(source, size)
	if err != nil {
		return nil, err
	}
	if header.Form != LogForm {
		return nil, Damaged(0, "it is not a log")
	}
	l := &Log{Header: header, source: source, cipher: c}
	var buffer []byte
	var pending []int64
	for offset := int64(HeaderSize); ; offset += int64(len(buffer)) {
		record, isCurrent, err := l.read(offset, size, &buffer)
		switch {
		case err != nil && (l.End == 0 || !errors.As(err, new(*FormatError))):
			return nil, err
		case err != nil:
			if l.End < size {
				l.Damage = err
			}
			return l, nil
		case Kind(record[0]) != Checkpoint:
			pending = append(pending, offset)
		default:
			if l.Save, err = readCheckpoint(record); err != nil {
				return nil, Damaged(offset, "decode the checkpoint: %v", err)
			}
			l.frames, l.End = append(l.frames, pending...), offset+int64(len(buffer))
			pending = pending[:0]
			if l.First == 0 {
				l.First = l.End
			}
		}
		l.HasOldKey = l.HasOldKey || !isCurrent
	}
}

func readCheckpoint(record []byte) (s Save, err error) {
	text, err := ReadText(Checkpoint, record)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// read reads the frame at an offset into the buffer, and returns its record, which may share the memory.
func (l *Log) read(offset, end int64, buffer *[]byte) (record []byte, isCurrent bool, err error) {
	frame := append((*buffer)[:0], make([]byte, FrameHeader)...)
	if err := ReadAt(l.source, frame, offset); err != nil {
		return nil, false, err
	}
	size, ok := FrameSize(frame)
	if !ok || size > end-offset {
		return nil, false, Damaged(offset, "a frame is incomplete")
	}
	*buffer = slices.Grow(frame, int(size))[:size]
	if err := ReadAt(l.source, (*buffer)[FrameHeader:], offset+FrameHeader); err != nil {
		return nil, false, err
	}
	return l.ParseFrame(*buffer, offset, l.cipher)
}

// LoadFunc calls onRecord for each record of a content, until the first error.
type LoadFunc func(onRecord func(persistence.Record) error) error

// Load is the LoadFunc of the log: all records but checkpoints, in the order of the file.
func (l *Log) Load(onRecord func(persistence.Record) error) error {
	var buffer []byte
	for _, offset := range l.frames {
		record, _, err := l.read(offset, l.End, &buffer)
		if err != nil {
			return err
		}
		var parsed persistence.Record
		if Kind(record[0]) == Objects {
			var o StoredObjects
			o, err = ReadObjects(record)
			parsed = persistence.Record{Head: o.Head, Bodies: o.Bodies, Retained: o.StoredSize()}
		} else {
			parsed.Head, err = ReadText(Changes, record)
		}
		if err == nil {
			err = onRecord(parsed)
		}
		if err != nil {
			return fmt.Errorf("at byte %d: %w", offset, err)
		}
	}
	return nil
}

// Writer appends records to a file.
type Writer struct {
	Header
	// End is the offset after the last record.
	End    int64
	out    *bufio.Writer
	cipher *Cipher
	frame  []byte
}

// NewWriter begins a file. The first Flush or Commit returns write errors.
func NewWriter(out io.Writer, h Header, c *Cipher) *Writer {
	w := ContinueFile(out, h, 0, c)
	w.Append(h.Append(nil))
	return w
}

// NewLog begins a log.
func NewLog(out io.Writer, c *Cipher) *Writer {
	h := Header{Form: LogForm}
	_, _ = rand.Read(h.ID[:]) // never fails
	return NewWriter(out, h, c)
}

// ContinueFile returns a writer that continues a file at an offset.
func ContinueFile(out io.Writer, h Header, offset int64, c *Cipher) *Writer {
	return &Writer{Header: h, out: bufio.NewWriterSize(out, 256<<10), cipher: c, End: offset}
}

// Append appends bytes. After an error it does nothing.
func (w *Writer) Append(text []byte) {
	_, _ = w.out.Write(text) // Err returns the error
	w.End += int64(len(text))
}

// Put appends a record, and returns the size of its frame.
func (w *Writer) Put(record []byte) (size uint32, err error) {
	w.frame = w.AppendFrame(w.frame[:0], record, w.End, w.cipher)
	w.Append(w.frame)
	return uint32(len(w.frame)), w.Err()
}

// Err returns the first write error.
func (w *Writer) Err() error {
	_, err := w.out.Write(nil)
	return err
}

// Commit appends a checkpoint and flushes.
func (w *Writer) Commit(s Save) error {
	text, err := json.Marshal(s)
	var record []byte
	if err == nil {
		record, err = AppendText(nil, Checkpoint, text, nil)
	}
	if err != nil {
		return err
	}
	_, _ = w.Put(record) // Flush returns the error
	return w.out.Flush()
}

// Close appends the index of a closed file and flushes.
func (w *Writer) Close(index []byte) error {
	record, err := AppendText(nil, Index, index, &Compressor{})
	if err != nil {
		return err
	}
	at := w.End
	size, _ := w.Put(record) // Flush returns the error
	w.Append(AppendTrailer(nil, at, size))
	return w.out.Flush()
}
