import matplotlib.pyplot as plt
import pandas as pd

sales = pd.Series([200, 245, 300], index=["January", "February", "March"])
sales.plot(kind="bar", title="Sales")
print(sales.sum())
