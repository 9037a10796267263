package block

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"

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
	frames []extent // of the valid records, without checkpoints
}

// LogSuffix ends the names of logs in a folder. LockName is the name of its lock.
const LogSuffix, LockName = ".cache", "lock"

// Save is the text of a checkpoint.
type Save struct {
	View persistence.View       `json:"view"`
	At   persistence.Checkpoint `json:"checkpoint"`
}

type extent struct{ offset, size int64 }

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
	var buffer, checkpoint []byte
	var pending []extent
	isOld := false
	for offset := int64(HeaderSize); ; {
		var record []byte
		var isCurrent bool
		e := extent{offset: offset}
		if e.size, err = l.frameSizeAt(offset, size); err == nil {
			record, isCurrent, err = l.read(e, &buffer)
		}
		if err != nil {
			break
		}
		offset += e.size
		isOld = isOld || !isCurrent
		if Kind(record[0]) != Checkpoint {
			pending = append(pending, e)
			continue
		}
		text, err := ReadText(Checkpoint, record)
		if err != nil {
			return nil, Damaged(e.offset, "%v", err)
		}
		checkpoint = append(checkpoint[:0], text...)
		l.frames, l.End = append(l.frames, pending...), offset
		pending, l.HasOldKey = pending[:0], isOld
		if l.First == 0 {
			l.First = offset
		}
	}
	if !errors.As(err, new(*FormatError)) || l.End == 0 {
		return nil, err
	}
	if l.End < size {
		l.Damage = err
	}
	if err := json.Unmarshal(checkpoint, &l.Save); err != nil {
		return nil, Damaged(l.End, "decode the checkpoint: %v", err)
	}
	return l, nil
}

// frameSizeAt returns the size of the frame at an offset.
func (l *Log) frameSizeAt(offset, fileSize int64) (int64, error) {
	var header [FrameHeader]byte
	if err := ReadAt(l.source, header[:], offset); err != nil {
		return 0, err
	}
	size, ok := FrameSize(header[:])
	if !ok || size > fileSize-offset {
		return 0, Damaged(offset, "a frame is incomplete")
	}
	return size, nil
}

// read returns the record of a frame. It is valid until the next call with the buffer.
func (l *Log) read(e extent, buffer *[]byte) (record []byte, isCurrent bool, err error) {
	if int64(cap(*buffer)) < e.size {
		*buffer = make([]byte, e.size)
	}
	frame := (*buffer)[:e.size]
	if err := ReadAt(l.source, frame, e.offset); err != nil {
		return nil, false, err
	}
	return l.ParseFrame(frame, e.offset, l.cipher)
}

// Load calls onRecord for each record but checkpoints, in the order of the file.
func (l *Log) Load(onRecord func(persistence.Record) error) error {
	return l.Records(func(record []byte) (err error) {
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
		return err
	})
}

// Records calls onRecord for each record but checkpoints, in the order of the file. A record is valid until
// onRecord returns.
func (l *Log) Records(onRecord func(record []byte) error) error {
	var buffer []byte
	for _, e := range l.frames {
		record, _, err := l.read(e, &buffer)
		if err != nil {
			return err
		}
		if err := onRecord(record); err != nil {
			return fmt.Errorf("at byte %d: %w", e.offset, err)
		}
	}
	return nil
}

// LogWriter appends records to a log.
type LogWriter struct {
	Header
	// End is the offset after the last record.
	End    int64
	out    *bufio.Writer
	cipher *Cipher
	frame  []byte
	record []byte
}

// NewLog begins a log that is written to out.
func NewLog(out io.Writer, c *Cipher) *LogWriter {
	h := Header{Form: LogForm}
	_, _ = rand.Read(h.ID[:]) // never fails
	w := AppendLog(out, h, int64(HeaderSize), c)
	_, _ = w.out.Write(h.Append(nil)) // Commit returns the error
	return w
}

// AppendLog returns a writer that continues a log at an offset.
func AppendLog(out io.Writer, h Header, offset int64, c *Cipher) *LogWriter {
	return &LogWriter{Header: h, out: bufio.NewWriterSize(out, 256<<10), cipher: c, End: offset}
}

// Put appends a record.
func (w *LogWriter) Put(record []byte) error {
	w.frame = w.AppendFrame(w.frame[:0], record, w.End, w.cipher)
	w.End += int64(len(w.frame))
	_, err := w.out.Write(w.frame)
	return err
}

// Commit appends a checkpoint and flushes.
func (w *LogWriter) Commit(s Save) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if w.record, err = AppendText(w.record[:0], Checkpoint, text, nil); err != nil {
		return err
	}
	return errors.Join(w.Put(w.record), w.out.Flush())
}
