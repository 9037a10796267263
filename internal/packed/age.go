package packed

// What an object remembers of its reads, beside the length of its namespace. Readers set a bit, without a
// lock and hardly ever more than once between two looks at it; there is no time stamp and no list of what was
// read last.
const (
	// flagRead says that the object was read since the last call of Age.
	flagRead = 1 << (17 + iota)
	// flagSeen says that it was read between two earlier calls, and flagUsed that this has happened twice, so
	// that it is in use: one look at everything does not make it so.
	flagSeen
	flagUsed
	// flagStays says that compressing the object saves nothing.
	flagStays

	// ageOne is an age of one call without a read.
	ageOne  = 1 << 24
	maskAge = 0xff << 24
)

// MaxAge is the age at which an object is taken to be in use no more.
const MaxAge = 6

// Use is how an object has been read.
type Use struct {
	// Read says that it was read since the last call of Age, Again that it was also read before that, not
	// long ago.
	Read, Again bool
	// Used says that it has been read more than once lately, at times that lie apart.
	Used bool
	// Age counts the calls of Age since the last read, MaxAge at most.
	Age int
	// Stays is what SetStays has set.
	Stays bool
}

// MarkRead notes that the object is read.
func (o *Object) MarkRead() {
	if o.word.Load()&flagRead == 0 {
		o.word.Or(flagRead)
	}
}

// Use tells how the object has been read.
func (o *Object) Use() Use { return useOf(o.word.Load()) }

func useOf(word uint32) Use {
	return Use{
		Read: word&flagRead != 0, Again: word&flagRead != 0 && word&flagSeen != 0, Used: word&flagUsed != 0,
		Age: int(word & maskAge / ageOne), Stays: word&flagStays != 0,
	}
}

// Age tells how the object has been read, and begins another period.
func (o *Object) Age() Use {
	for {
		word := o.word.Load()
		next := word
		switch {
		case word&flagRead != 0:
			if word&flagSeen != 0 {
				next |= flagUsed
			}
			next = next&^(flagRead|maskAge) | flagSeen
		case word&maskAge < MaxAge*ageOne:
			next += ageOne
		}
		if next&maskAge == MaxAge*ageOne {
			next &^= flagSeen | flagUsed
		}
		if next == word || o.word.CompareAndSwap(word, next) {
			use := useOf(word)
			use.Used, use.Age = next&flagUsed != 0, int(next&maskAge/ageOne)
			return use
		}
	}
}

// SetUsed notes that the object is in use.
func (o *Object) SetUsed() { o.word.Or(flagSeen | flagUsed) }

// SetStays notes that compressing the object saves nothing.
func (o *Object) SetStays() { o.word.Or(flagStays) }
