// The stories that the reader carries with it, so that it works without a network. All places and people are made up.
this.news = this.news || {};
this.news.stories = [
  {
    id: 1,
    section: 'Town',
    title: 'The ferry runs at night again',
    lead: 'After eleven months of repairs, the last boat leaves the harbour at half past twelve.',
    text: [
      'The old boat came back with a new engine and twenty more seats. On the first evening all of them were taken.',
      'Those who work late no longer need the long way round over the bridge, which takes an hour on foot.'
    ],
    picture: 'ferry.png',
    alt: 'A bay between two hills'
  },
  {
    id: 2,
    section: 'Town',
    title: 'Bridge to close for nine days',
    lead: 'Workers will change the bearings that have carried the bridge since it was built.',
    text: [
      'Carts and cars go by way of the mill. People on foot can cross in the mornings until eight.',
      'The town asks everyone who can to take the ferry, which costs nothing during these days.'
    ],
    picture: 'bridge.png',
    alt: 'Evening over brown hills'
  },
  {
    id: 3,
    section: 'Nature',
    title: 'Apples two weeks early',
    lead: 'A warm spring brought the orchards forward, and the school helps to pick.',
    text: [
      'The first baskets were full on Monday. The growers expect a good year, but fear for the late kinds.',
      'Two classes of the school spend their mornings in the trees, and learn to count in dozens.'
    ],
    picture: 'orchard.png',
    alt: 'Green hills'
  },
  {
    id: 4,
    section: 'Trade',
    title: 'The market moves indoors',
    lead: 'From November the stalls stand in the hall behind the harbour.',
    text: [
      'The roof is mended, and there is light for the early hours. Rents stay as they were.',
      'Fish is sold by the east door, so that the hall keeps the smell of bread.'
    ],
    picture: 'market.png',
    alt: 'Purple hills'
  },
  {
    id: 5,
    section: 'Nature',
    title: 'Who hears the signal rock?',
    lead: 'A listener wants to know why the rock hums when the wind comes from the north.',
    text: [
      'She put six microphones along the coast. Four of them heard a tone that no one in the boats could hear.',
      'The school library shows her maps until the end of the month.'
    ],
    picture: 'signal.png',
    alt: 'Grey hills under a pale sky'
  }
];
