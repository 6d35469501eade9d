"""All topics and subscriptions of all regions."""

from collections.abc import Iterator

from outboxd.localaws.ids import new_id
from outboxd.localaws.sns.arns import TopicPlace, topic_arn
from outboxd.localaws.sns.errors import subscription_not_found, topic_not_found
from outboxd.localaws.sns.subscription import Settings, Subscription
from outboxd.localaws.sns.topic import Topic

# Far from zero, as the sequence numbers of SQS are.
_FIRST_SEQUENCE = 10_000_000_000_000_000_000


class Registry:
    """Finds, makes and removes topics and subscriptions, each in the order of its making."""

    def __init__(self) -> None:
        self._topics: dict[TopicPlace, Topic] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._by_topic: dict[str, dict[str, Subscription]] = {}
        self._sequence = _FIRST_SEQUENCE

    def find(self, place: TopicPlace) -> Topic | None:
        return self._topics.get(place)

    def get(self, place: TopicPlace) -> Topic:
        """Raises NotFound."""
        topic = self._topics.get(place)
        if topic is None:
            raise topic_not_found()
        return topic

    def create(self, place: TopicPlace, attributes: dict[str, str]) -> Topic:
        topic = Topic(place.region, place.name, topic_arn(*place), attributes)
        self._topics[place] = topic
        self._by_topic[topic.arn] = {}
        return topic

    def delete(self, topic: Topic) -> None:
        """With all its subscriptions; AWS keeps them in its lists for some days."""
        del self._topics[TopicPlace(topic.region, topic.name)]
        for arn in self._by_topic.pop(topic.arn):
            del self._subscriptions[arn]

    def topics(self, region: str) -> list[Topic]:
        """By name."""
        return [self._topics[place] for place in sorted(self._topics) if place.region == region]

    def subscribe(self, topic: Topic, endpoint: str, settings: Settings) -> Subscription:
        arn = f"{topic.arn}:{new_id()}"
        subscription = Subscription(arn=arn, topic=topic, endpoint=endpoint, settings=settings)
        self._subscriptions[arn] = subscription
        self._by_topic[topic.arn][arn] = subscription
        return subscription

    def unsubscribe(self, arn: str) -> None:
        """Nothing happens if it is gone, as in AWS."""
        subscription = self._subscriptions.pop(arn, None)
        if subscription is not None:
            del self._by_topic[subscription.topic.arn][arn]

    def subscription(self, arn: str) -> Subscription:
        """Raises NotFound."""
        subscription = self._subscriptions.get(arn)
        if subscription is None:
            raise subscription_not_found()
        return subscription

    def subscriptions_of(self, topic: Topic) -> list[Subscription]:
        return list(self._by_topic[topic.arn].values())

    def subscriptions(self, region: str) -> Iterator[Subscription]:
        return (each for each in self._subscriptions.values() if each.topic.region == region)

    def next_sequence(self) -> str:
        """A sequence number above all earlier ones, of any topic."""
        self._sequence += 1000
        return str(self._sequence)
