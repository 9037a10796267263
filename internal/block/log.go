package block

import (
	"bufio"
	"cmp"
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

	cipher *Cipher
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
	l := &Log{Header: header, cipher: c}
	for frames := l.scan(source, size); ; {
		record, isCurrent, err := frames.next()
		switch {
		case err != nil && (l.End == 0 || !errors.As(err, new(*FormatError))):
			return nil, err
		case err != nil:
			if l.End < size {
				l.Damage = err
			}
			return l, nil
		case Kind(record[0]) == Checkpoint:
			l.Save = Save{} // members can be absent
			text, err := ReadText(Checkpoint, record)
			if err = cmp.Or(err, json.Unmarshal(text, &l.Save)); err != nil {
				return nil, Damaged(frames.offset, "decode the checkpoint before it: %v", err)
			}
			if l.End = frames.offset; l.First == 0 {
				l.First = l.End
			}
		}
		l.HasOldKey = l.HasOldKey || !isCurrent
	}
}

// scanner reads the frames of a log in their order, up to end. offset is that of the next one.
type scanner struct {
	log         *Log
	in          *bufio.Reader
	offset, end int64
	frame       []byte
}

func (l *Log) scan(source io.ReaderAt, end int64) *scanner {
	start := int64(HeaderSize)
	buffer := max(FrameHeader, min(end-start, 128<<10)) // most logs are small
	in := bufio.NewReaderSize(io.NewSectionReader(source, start, end-start), int(buffer))
	return &scanner{log: l, in: in, offset: start, end: end}
}

// next returns the record of the next frame. It is valid until the next call.
func (s *scanner) next() (record []byte, isCurrent bool, err error) {
	header, err := s.in.Peek(FrameHeader)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	size, ok := FrameSize(header)
	if !ok || size > s.end-s.offset {
		return nil, false, Damaged(s.offset, "a frame is incomplete")
	}
	s.frame = slices.Grow(s.frame[:0], int(size))[:size]
	if _, err := io.ReadFull(s.in, s.frame); err != nil {
		return nil, false, err
	}
	s.offset += size
	return s.log.ParseFrame(s.frame, s.offset-size, s.log.cipher)
}

// Load calls onRecord for each record but checkpoints, in the order of the file, which source reads.
func (l *Log) Load(source io.ReaderAt, onRecord func(persistence.Record) error) error {
	for frames := l.scan(source, l.End); frames.offset < l.End; {
		offset := frames.offset
		record, _, err := frames.next()
		if err != nil {
			return err
		}
		var parsed persistence.Record
		switch Kind(record[0]) {
		case Checkpoint:
			continue
		case Objects:
			var o StoredObjects
			o, err = ReadObjects(record)
			parsed = persistence.Record{Head: o.Head, Bodies: o.Bodies, Retained: o.StoredSize()}
		default:
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

// NewWriter begins a file. Err, Commit and Close return write errors.
func NewWriter(out io.Writer, form Form, c *Cipher) *Writer {
	h := Header{Form: form}
	if form == LogForm {
		_, _ = rand.Read(h.ID[:]) // never fails
	}
	w := ContinueFile(out, h, 0, c)
	w.Append(h.Append(nil))
	return w
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
	_, _ = w.Put(record) // Flush returns the error
	w.Append(AppendTrailer(nil, at))
	return w.out.Flush()
}
