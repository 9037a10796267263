package packed

// Object.state records reads of the object, in addition to the length of the namespace. A reader only sets a
// bit, without a lock, and at most once between two calls of Age. There are no timestamps and no LRU list.
const (
	// flagRead is set if the object was read since the last call of Age.
	flagRead = 1 << (17 + iota)
	// flagReadBefore is set if it was read in an earlier period. flagInUse is set if it was read in two
	// periods. A single scan of all objects thus does not mark them as in use.
	flagReadBefore
	flagInUse
	// flagIncompressible is set if compressing the object saves no memory.
	flagIncompressible

	// ageUnit is the age of an object that was not read for one period.
	ageUnit = 1 << 24
	maskAge = 0xff << 24
)

// MaxAge is the age at which an object no longer counts as in use.
const MaxAge = 6

// Usage describes how an object is read.
type Usage struct {
	// Read is set if the object was read since the last call of StartReadPeriod, ReadBefore if it was also
	// read in an earlier recent period.
	Read, ReadBefore bool
	// InUse is set if the object was read in more than one recent period.
	InUse bool
	// Age is the number of periods since the last read, at most MaxAge.
	Age int
	// Incompressible is set by SetIncompressible.
	Incompressible bool
}

func (o *Object) MarkRead() {
	if o.state.Load()&flagRead == 0 {
		o.state.Or(flagRead)
	}
}

// Usage returns the object's usage without starting a new period.
func (o *Object) Usage() Usage { return usageOf(o.state.Load()) }

func usageOf(state uint32) Usage {
	return Usage{
		Read: state&flagRead != 0, ReadBefore: state&flagRead != 0 && state&flagReadBefore != 0,
		InUse: state&flagInUse != 0,
		Age:   int(state & maskAge / ageUnit), Incompressible: state&flagIncompressible != 0,
	}
}

// StartReadPeriod returns the object's usage and starts a new period.
func (o *Object) StartReadPeriod() Usage {
	for {
		state := o.state.Load()
		next := state
		switch {
		case state&flagRead != 0:
			if state&flagReadBefore != 0 {
				next |= flagInUse
			}
			next = next&^(flagRead|maskAge) | flagReadBefore
		case state&maskAge < MaxAge*ageUnit:
			next += ageUnit
		}
		if next&maskAge == MaxAge*ageUnit {
			next &^= flagReadBefore | flagInUse
		}
		if next == state || o.state.CompareAndSwap(state, next) {
			use := usageOf(state)
			use.InUse, use.Age = next&flagInUse != 0, int(next&maskAge/ageUnit)
			return use
		}
	}
}

// SetInUse marks the object as in use.
func (o *Object) SetInUse() { o.state.Or(flagReadBefore | flagInUse) }

// SetIncompressible records that compressing the object saves no memory.
func (o *Object) SetIncompressible() { o.state.Or(flagIncompressible) }
